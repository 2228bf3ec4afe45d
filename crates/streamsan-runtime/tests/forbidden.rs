//! Uses that the types forbid: each program in `forbidden/` must be refused by the compiler, with the error beside it.
//!
//! `TRYBUILD=overwrite` writes the errors anew; read the diff.

#[test]
fn the_compiler_refuses() {
    trybuild::TestCases::new().compile_fail("tests/forbidden/*.rs");
}
