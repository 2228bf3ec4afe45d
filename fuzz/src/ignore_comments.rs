//! Text as Python source with ignore comments. Each comment is for a line that is there, and can be written again.

use streamsan_cli::texts::ignore_comments;

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let lines = text.lines().count();
    let (comments, mistakes) = ignore_comments(&text);
    let count = text.matches("streamsan:").count();
    assert!(comments.len() <= count, "more comments than there are");
    for mistake in &mistakes {
        assert!((1..=lines).contains(&(mistake.line as usize)) && !mistake.message.is_empty(), "{mistake}");
    }
    for comment in &comments {
        assert!((1..=lines).contains(&(comment.line as usize)), "line {} of {lines}", comment.line);
        assert!(!comment.rules.is_empty() && !comment.reason.is_empty());
        let codes: Vec<&str> = comment.rules.iter().map(|rule| rule.code()).collect();
        let again = format!("x = 1  # streamsan: ignore[{}] {}", codes.join(","), comment.reason);
        let (found, mistakes) = ignore_comments(&again);
        assert!(mistakes.is_empty(), "{again:?}: {mistakes:?}");
        assert_eq!(found.len(), 1, "{again:?}");
        assert_eq!((found[0].line, &found[0].rules, &found[0].reason), (1, &comment.rules, &comment.reason));
    }
}
