//! temporary
fn main() {
    for f in std::env::args().skip(1) {
        match streamsan_import::read(std::path::Path::new(&f)) {
            Ok(p) => println!("{}", streamsan_import::text(&f, &streamsan_import::analyse(&p))),
            Err(e) => println!("{f}: {e}"),
        }
    }
}
