//! Text as a `pyproject.toml`. Errors name a line of it.

use streamsan_cli::texts;

const PATHS: [&str; 4] =
    ["train.py", "tests/deep/down/test_a.py", "", "a/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/b"];

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match texts::settings(&text, &PATHS) {
        Ok(covered) => {
            assert!(covered.is_none_or(|covered| covered.len() == PATHS.len()));
        }
        Err(message) => {
            let line = message.strip_prefix("error: pyproject.toml:").and_then(|rest| rest.split_once(':'));
            let line: usize =
                line.and_then(|(line, _)| line.parse().ok()).expect("the message begins with a line");
            assert!((1..=text.matches('\n').count() + 1).contains(&line), "{message}");
        }
    }
}
