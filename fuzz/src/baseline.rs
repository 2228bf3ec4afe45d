//! Bytes as a baseline. What is read and written can be read again, and is the same.

use streamsan_cli::texts::baseline;

pub(crate) fn run(input: &[u8]) {
    match baseline(input) {
        Ok(text) => assert_eq!(baseline(text.as_bytes()).as_deref(), Ok(&*text)),
        Err(message) => {
            let line = message.strip_prefix("error: known.json:").and_then(|rest| rest.split_once(':'));
            let line: usize =
                line.and_then(|(line, _)| line.parse().ok()).expect("the message begins with a line");
            let lines = input.iter().filter(|&&byte| byte == b'\n').count() + 1;
            assert!((1..=lines).contains(&line), "{message} of {lines} lines");
        }
    }
}
