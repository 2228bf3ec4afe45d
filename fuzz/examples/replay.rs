//! Runs single inputs: `cargo run --example replay -- TARGET FILE…`, with stable Rust and a debugger if need be.

use std::time::Instant;
use std::{env, fs};

fn main() {
    let mut arguments = env::args().skip(1);
    let target = arguments.next().expect("replay TARGET FILE…");
    for file in arguments {
        let input = fs::read(&file).expect("the file can be read");
        let start = Instant::now();
        streamsan_fuzz::run(&target, &input);
        println!("{file}: {:.1?}", start.elapsed());
    }
}
