//! Whether to colour.

/// What the user wants of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Yes.
    Always,
    /// No.
    Never,
}

impl ColorChoice {
    /// Whether to colour. `terminal` says whether the text goes to one, `variable` reads the environment.
    pub fn enabled(self, terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
        let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if set("NO_COLOR") => false,
            Self::Auto if variable("CLICOLOR_FORCE").is_some_and(|value| !matches!(&*value, "" | "0")) => {
                true
            }
            Self::Auto => terminal && variable("TERM").is_none_or(|term| term != "dumb"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ColorChoice;

    #[test]
    fn environment_decides_only_for_auto() {
        let none = |_: &str| None;
        let no_color = |name: &str| (name == "NO_COLOR").then(|| "1".to_owned());
        let force = |name: &str| (name == "CLICOLOR_FORCE").then(|| "1".to_owned());
        let dumb = |name: &str| (name == "TERM").then(|| "dumb".to_owned());
        assert!(ColorChoice::Auto.enabled(true, none));
        assert!(!ColorChoice::Auto.enabled(false, none));
        assert!(!ColorChoice::Auto.enabled(true, no_color));
        assert!(!ColorChoice::Auto.enabled(true, dumb));
        assert!(ColorChoice::Auto.enabled(false, force));
        assert!(ColorChoice::Always.enabled(false, no_color));
        assert!(!ColorChoice::Never.enabled(true, force));
    }
}
