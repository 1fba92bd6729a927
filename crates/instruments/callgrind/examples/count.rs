//! Counts what a program executes in one function, for each of its rounds.
//! usage: count SYMBOL FEW MANY PROGRAM [ARGUMENT...]; `{}` among the arguments is the number of rounds

use std::error::Error;

use callgrind::{Invocation, Options, per_handshake};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [symbol, few, many, program, rest @ ..] = arguments.as_slice() else {
        return Err("usage: count SYMBOL FEW MANY PROGRAM [ARGUMENT...]".into());
    };
    let run = |rounds: &str| -> Result<Invocation, Box<dyn Error>> {
        Ok(Invocation {
            program: program.into(),
            arguments: rest.iter().map(|word| word.replace("{}", rounds).into()).collect(),
            handshakes: rounds.parse()?,
            ..Invocation::default()
        })
    };
    let counts = per_handshake(&run(few)?, &run(many)?, symbol, &Options::default(), |_| Ok(()))?;
    println!(
        "{:.0} instructions, {:?} atomic, {:?} fences, {:.0} unread",
        counts.instructions, counts.atomic_rmw, counts.fences, counts.unread
    );
    for part in counts.by_object.iter().chain(counts.by_symbol.iter().take(15)) {
        println!(
            "{:12.1} {:8.1}  {} {}",
            part.instructions,
            part.atomic_rmw.unwrap_or(f64::NAN),
            part.object,
            part.symbol
        );
    }
    Ok(())
}
