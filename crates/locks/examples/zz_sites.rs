//! temporary
fn main() {
    let args: Vec<std::ffi::CString> = std::env::args().skip(1).map(|a| std::ffi::CString::new(a).unwrap()).collect();
    let ptrs: Vec<_> = args.iter().map(|a| a.as_ptr()).chain([std::ptr::null()]).collect();
    // SAFETY: temporary
    unsafe {
        let h = libc::dlopen(c"/tmp/lk/h/h.so".as_ptr(), libc::RTLD_NOW);
        assert!(!h.is_null());
        let f = libc::dlsym(h, c"run".as_ptr());
        let f: extern "C" fn(i32, *const *const libc::c_char) -> i32 = std::mem::transmute(f);
        f(args.len() as i32, ptrs.as_ptr());
    }
    let counter = locks::Counter::find().unwrap();
    let t = std::time::Instant::now();
    let counts = counter.read(locks::Side::Server);
    println!("{:?} {} sites", t.elapsed(), counts.sites.len());
    for s in counts.sites.iter().take(14) { println!("   {:8} {:?} {} {}", s.count, s.kind, s.symbol, s.object); }
}
