//! `[tool.streamsan]` in `pyproject.toml`: what a project wants checked, so that nobody has to remember options.

use crate::arguments::{Rules, parse_rules};
use crate::fault::Fault;
use crate::nearest::nearest;
use glob::Pattern;
use std::ops::Range;
use std::path::{Path, PathBuf};
use streamsan_check::Rule;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The name of the file.
const NAME: &str = "pyproject.toml";

/// The name of the table in `tool`.
const WORD: &str = "streamsan";

/// Bytes of a file: nobody writes more.
const MOST_BYTES: u64 = 16 << 20;

/// All keys of the table.
const KEYS: [&str; 7] =
    ["select", "ignore", "error", "warn", "per-file-ignores", "error-on-warning", "baseline"];

/// What the file says. Options of the command line win over it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Where the file lies: its patterns and paths are relative to this folder. Empty without a file.
    pub(crate) folder: PathBuf,
    /// Only these rules.
    pub(crate) select: Vec<Rules>,
    /// Not these rules.
    pub(crate) ignore: Vec<Rules>,
    /// Rules whose findings are errors.
    pub(crate) error: Vec<Rules>,
    /// Rules whose findings are warnings.
    pub(crate) warn: Vec<Rules>,
    /// Files with rules that are not reported there.
    pub(crate) per_file_ignores: Vec<PerFile>,
    /// Whether warnings lead to exit status 1.
    pub(crate) error_on_warning: bool,
    /// The file of known findings.
    pub(crate) baseline: Option<PathBuf>,
}

/// Rules that are not reported in some files.
#[derive(Clone, Debug)]
pub(crate) struct PerFile {
    pattern: Pattern,
    /// The rules.
    pub(crate) rules: Vec<Rule>,
}

impl PerFile {
    /// The pattern as it was written.
    pub(crate) fn pattern(&self) -> &str {
        self.pattern.as_str()
    }

    /// Whether the pattern stands for the file. `path` is relative to the folder of the settings. A pattern without a
    /// slash is compared with the file's name; `*` stands for any part of a path.
    pub(crate) fn covers(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.pattern.matches(if self.pattern.as_str().contains('/') { path } else { name })
    }
}

/// Reads the nearest file upwards from `start` that has the table; without one, nothing is set.
pub(crate) fn find(start: &Path) -> Result<Settings, Fault> {
    for folder in start.ancestors() {
        let path = folder.join(NAME);
        // A pipe or a device may have no end.
        if !path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MOST_BYTES) {
            continue;
        }
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let shown = path.strip_prefix(start).unwrap_or(&path).display().to_string();
        // Without the word the file is somebody else's, whatever is wrong with it, unless the word is misspelt.
        if !bytes.windows(WORD.len()).any(|word| word == WORD.as_bytes()) {
            match std::str::from_utf8(&bytes).ok().and_then(|text| misspelt(text, &shown)) {
                Some(fault) => return Err(fault),
                None => continue,
            }
        }
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(Fault::new(format!("cannot read {shown}: it is not UTF-8")).help("save it as UTF-8"));
        };
        if let Some(settings) = parse(&text, &shown, folder)? {
            return Ok(settings);
        }
    }
    Ok(Settings::default())
}

/// The settings of one file, or none if it has no table of ours.
pub(crate) fn parse(text: &str, shown: &str, folder: &Path) -> Result<Option<Settings>, Fault> {
    let place = Place { text, shown };
    let table = DeTable::parse(text).map_err(|error| {
        place
            .fault(&error.span().unwrap_or_default(), &format!("not valid TOML: {}", error.message()))
            .help("repair the file; streamsan reads [tool.streamsan] in it")
    })?;
    let tool = table.get_ref().get("tool").and_then(|tool| tool.get_ref().as_table());
    let Some(ours) = tool.and_then(|tool| tool.get(WORD)) else {
        return tool.and_then(|tool| place.misspelt(tool)).map_or(Ok(None), Err);
    };
    let DeValue::Table(table) = ours.get_ref() else {
        return Err(place
            .fault(&ours.span(), "`tool.streamsan` has to be a table")
            .help("write [tool.streamsan] on a line of its own"));
    };
    let mut settings = Settings { folder: folder.to_owned(), ..Settings::default() };
    for (key, value) in table {
        match &**key.get_ref() {
            "select" => settings.select = place.rules("select", value)?,
            "ignore" => settings.ignore = place.rules("ignore", value)?,
            "error" => settings.error = place.rules("error", value)?,
            "warn" => settings.warn = place.rules("warn", value)?,
            "per-file-ignores" => settings.per_file_ignores = place.per_file(value)?,
            "error-on-warning" => settings.error_on_warning = place.boolean("error-on-warning", value)?,
            "baseline" => settings.baseline = Some(folder.join(place.string("baseline", value)?)),
            unknown => return Err(place.unknown(&key.span(), unknown)),
        }
    }
    Ok(Some(settings))
}

/// The fault of a file without our name in it, if it seems to have our table.
fn misspelt(text: &str, shown: &str) -> Option<Fault> {
    let table = DeTable::parse(text).ok()?;
    let tool = table.get_ref().get("tool")?.get_ref().as_table()?;
    Place { text, shown }.misspelt(tool)
}

/// For messages: where something stands.
struct Place<'a> {
    text: &'a str,
    shown: &'a str,
}

impl Place<'_> {
    fn fault(&self, span: &Range<usize>, message: &str) -> Fault {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        Fault::new(format!("{}:{line}: {message}", self.shown))
    }

    fn unknown(&self, span: &Range<usize>, key: &str) -> Fault {
        let fault = self.fault(span, &format!("unknown key `{key}` in [tool.streamsan]"));
        match nearest(&key.replace('_', "-"), KEYS) {
            Some(near) => fault.help(format!("did you mean `{near}`?")),
            None => fault.help(format!("known keys: {}", KEYS.join(", "))),
        }
    }

    /// A table that is called nearly as ours and has our keys only: another tool's has its own.
    fn misspelt(&self, tool: &DeTable<'_>) -> Option<Fault> {
        let is_ours = |table: &DeTable<'_>| table.keys().all(|key| KEYS.contains(&&**key.get_ref()));
        let (name, _) = tool.iter().find(|(name, value)| {
            let near = nearest(name.get_ref(), [WORD]).is_some();
            near && value.get_ref().as_table().is_some_and(is_ours)
        })?;
        let fault =
            self.fault(&name.span(), &format!("[tool.{}] is nothing that streamsan reads", name.get_ref()));
        Some(fault.help("did you mean [tool.streamsan]?"))
    }

    fn wrong_type(&self, key: &str, expected: &str, value: &Spanned<DeValue<'_>>, help: &str) -> Fault {
        let found = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.fault(&value.span(), &format!("`{key}` has to be {expected}, not {found}")).help(help)
    }

    fn boolean(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<bool, Fault> {
        match value.get_ref() {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.wrong_type(key, "true or false", value, &format!("write it as {key} = true"))),
        }
    }

    fn string<'v>(&self, key: &str, value: &'v Spanned<DeValue<'_>>) -> Result<&'v str, Fault> {
        match value.get_ref() {
            DeValue::String(value) if !value.is_empty() => Ok(value),
            DeValue::String(_) => Err(self
                .fault(&value.span(), &format!("`{key}` is empty"))
                .help("name a file, or leave the key out")),
            _ => Err(self.wrong_type(key, "a string", value, &format!("write it as {key} = \"…\""))),
        }
    }

    fn rules(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<Rules>, Fault> {
        let help = format!("write it as {key} = [\"SS203\", \"SS4\"]");
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong_type(key, "a list of rules", value, &help));
        };
        items
            .iter()
            .map(|item| {
                let DeValue::String(text) = item.get_ref() else {
                    return Err(self.wrong_type(key, "a list of strings", item, &help));
                };
                parse_rules(text).map_err(|_| {
                    let fault = self.fault(&item.span(), &format!("there is no rule `{text}` (in `{key}`)"));
                    let names = Rule::all().flat_map(|rule| [rule.code(), rule.name()]);
                    match nearest(text, names) {
                        Some(near) => fault.help(format!("did you mean `{near}`?")),
                        None => fault.help("`streamsan explain rules` lists them"),
                    }
                })
            })
            .collect()
    }

    fn per_file(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<PerFile>, Fault> {
        const HELP: &str =
            "write it as [tool.streamsan.per-file-ignores] with lines such as \"tests/**\" = [\"SS203\"]";
        let key = "per-file-ignores";
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong_type(key, "a table of patterns with rules", value, HELP));
        };
        // By place in the file: a table has no order of its own.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(pattern, _)| pattern.span().start);
        entries
            .into_iter()
            .map(|(text, rules)| {
                let pattern = Pattern::new(text.get_ref()).map_err(|error| {
                    self.fault(&text.span(), &format!("`{}` is no pattern: {}", text.get_ref(), error.msg))
                        .help("`*` stands for any part of a path, `?` for one character")
                })?;
                let rules = self.rules(key, rules)?.into_iter().flat_map(|rules| rules.0).collect();
                Ok(PerFile { pattern, rules })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Settings, misspelt, parse};
    use std::path::Path;
    use streamsan_check::Rule;

    fn parsed(text: &str) -> Result<Option<Settings>, String> {
        parse(text, "pyproject.toml", Path::new("/job")).map_err(|fault| fault.to_string())
    }

    #[test]
    fn all_keys() {
        let settings = parsed(
            "[tool.streamsan]\nselect = [\"SS1\", \"use-after-free\"]\nignore = ['SS203']\nerror = ['SS4']\n\
             warn = []\nerror-on-warning = true\nbaseline = 'known.json'\n\
             per-file-ignores = { \"tests/**\" = ['SS1'], 'conftest.py' = ['SS2'] }\n",
        )
        .unwrap()
        .unwrap();
        assert_eq!((settings.select.len(), settings.select[0].0.len()), (2, 3));
        assert_eq!(settings.ignore[0].0, [Rule::Ss203]);
        assert!(settings.error_on_warning && settings.warn.is_empty() && settings.error.len() == 1);
        assert_eq!(settings.baseline.as_deref(), Some(Path::new("/job/known.json")));
        let covers = |index: usize, path: &str| settings.per_file_ignores[index].covers(path);
        assert!(covers(0, "tests/a.py") && covers(0, "tests/deep/a.py") && !covers(0, "src/tests/a.py"));
        assert!(covers(1, "any/where/conftest.py") && covers(1, "conftest.py") && !covers(1, "a.py"));
        assert_eq!(settings.per_file_ignores[0].rules, [Rule::Ss101, Rule::Ss102, Rule::Ss103]);
    }

    #[test]
    fn files_without_the_table_say_nothing() {
        for text in ["", "[project]\nname = 'x'\n", "[tool.ruff]\n", "tool = 3\n", "[tool]\nstreamsan2 = 1"] {
            assert!(parsed(text).unwrap().is_none(), "{text}");
        }
        assert!(parsed("[tool.streamsan]\n").unwrap().is_some());
    }

    #[test]
    fn a_misspelt_table_is_no_silence() {
        for text in
            ["[tool.streamsna]\nignore = ['SS1']\n", "[tool.stremsan.per-file-ignores]\n'a.py' = ['SS1']\n"]
        {
            let said = misspelt(text, "pyproject.toml").map(|fault| fault.to_string()).unwrap();
            assert!(said.starts_with("error: pyproject.toml:1: [tool.str"), "{said}");
            assert!(said.ends_with("help: did you mean [tool.streamsan]?"), "{said}");
            assert_eq!(parsed(text).unwrap_err(), said);
        }
        // Another tool with a name like ours.
        assert!(misspelt("[tool.streamlan]\nport = 80\n", "pyproject.toml").is_none());
        assert!(misspelt("[tool.ruff]\nignore = []\n", "pyproject.toml").is_none());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        const FORM: &str = "help: write it as ignore = [\"SS203\", \"SS4\"]";
        for (text, expected) in [
            (
                "\nigonre = ['SS1']",
                "3: unknown key `igonre` in [tool.streamsan]\nhelp: did you mean `ignore`?".to_owned(),
            ),
            (
                "per_file_ignore = {}",
                "2: unknown key `per_file_ignore` in [tool.streamsan]\nhelp: did you mean `per-file-ignores`?"
                    .to_owned(),
            ),
            (
                "colour = 1",
                "2: unknown key `colour` in [tool.streamsan]\nhelp: known keys: select, ignore, error, warn, per-file-ignores, error-on-warning, baseline".to_owned(),
            ),
            (
                "ignore = 'SS101'",
                format!("2: `ignore` has to be a list of rules, not a string\n{FORM}"),
            ),
            (
                "ignore = [\n  'SS1',\n  3]",
                format!("4: `ignore` has to be a list of strings, not a number\n{FORM}"),
            ),
            (
                "select = [\n'SS1O1']",
                "3: there is no rule `SS1O1` (in `select`)\nhelp: did you mean `SS101`?".to_owned(),
            ),
            (
                "warn = ['nothing-like-it']",
                "2: there is no rule `nothing-like-it` (in `warn`)\nhelp: `streamsan explain rules` lists them"
                    .to_owned(),
            ),
            (
                "error-on-warning = 'yes'",
                "2: `error-on-warning` has to be true or false, not a string\nhelp: write it as error-on-warning = true".to_owned(),
            ),
            ("baseline = ''", "2: `baseline` is empty\nhelp: name a file, or leave the key out".to_owned()),
            (
                "per-file-ignores = ['x']",
                "2: `per-file-ignores` has to be a table of patterns with rules, not a list\nhelp: write it as [tool.streamsan.per-file-ignores] with lines such as \"tests/**\" = [\"SS203\"]".to_owned(),
            ),
            (
                "[tool.streamsan.per-file-ignores]\n'tests/***' = ['SS1']",
                "3: `tests/***` is no pattern: wildcards are either regular `*` or recursive `**`\nhelp: `*` stands for any part of a path, `?` for one character".to_owned(),
            ),
        ] {
            let whole = format!("[tool.streamsan]\n{text}\n");
            assert_eq!(parsed(&whole).unwrap_err(), format!("error: pyproject.toml:{expected}"));
        }
        let broken = parsed("[tool.streamsan]\nignore = [\n").unwrap_err();
        assert!(broken.starts_with("error: pyproject.toml:2: not valid TOML: "), "{broken}");
        assert_eq!(
            parsed("tool.streamsan = 3").unwrap_err(),
            "error: pyproject.toml:1: `tool.streamsan` has to be a table\nhelp: write [tool.streamsan] on a line of its own"
        );
    }
}
