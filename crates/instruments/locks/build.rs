//! Compiles the two objects that are preloaded; `src/object.rs` embeds them.

use std::path::PathBuf;
use std::process::ExitCode;

/// Each object's name and its sources; the first is compiled and includes the others.
const OBJECTS: [(&str, &str); 2] = [("count", "count.c"), ("light", "light.c")];

// `static_flag(false)` still keeps `-static` from the compiler, whatever its note says.
#[allow(deprecated)]
fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=interpose");
    let Some(out) = std::env::var_os("OUT_DIR").map(PathBuf::from) else {
        println!("cargo::error=OUT_DIR is not set: build with cargo");
        return ExitCode::FAILURE;
    };
    let compiler = cc::Build::new()
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .flag("-fPIC")
        // Shared objects they are, in a static program, too.
        .static_flag(false)
        .flag("-fvisibility=hidden")
        // They are there from the program's start: their thread-local words need no call.
        .flag("-ftls-model=initial-exec")
        .get_compiler();
    for (name, source) in OBJECTS {
        let mut command = compiler.to_command();
        command.args(["-shared", "-Wl,-z,now", "-o"]);
        command.arg(out.join(format!("{name}.so")));
        command.arg(PathBuf::from("interpose").join(source));
        match command.status() {
            Ok(status) if status.success() => {}
            Ok(status) => {
                println!("cargo::error=compiling interpose/{source}: {status}");
                return ExitCode::FAILURE;
            }
            Err(error) => {
                println!("cargo::error=running the C compiler: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
