//! Where in the program a call was made, as far as a profile says it.
//!
//! A Python frame of a profile has the line at which its function *starts*, not the one that it had come to.

use crate::enclosing::enclosing;
use crate::names::NameId;
use crate::profile::{Frame, Profile};
use crate::spans::Span;

/// Parts of paths that are not the user's. The profiler has taken the folders of `sys.path` off their front.
const LIBRARY: [&str; 12] = [
    "torch/",
    "site-packages/",
    "dist-packages/",
    "contextlib.py",
    "threading.py",
    "queue.py",
    "functools.py",
    "runpy.py",
    "concurrent/futures/",
    "asyncio/",
    "multiprocessing/",
    "importlib/",
];

/// Where a call was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The user's innermost Python function.
    pub function: Option<Function>,
    /// What it called there: `torch.cuda.synchronize`, `Tensor.item`.
    pub callee: Option<String>,
    /// The operator of torch around the call: `aten::item`.
    pub operator: Option<String>,
    /// The lines of the function that call it, if the source was found: see [`crate::Analysis::find_lines`].
    pub lines: Vec<u64>,
}

/// A Python function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function {
    /// As the profile has it: below a folder of `sys.path`, if it lies in one.
    pub file: String,
    /// Its first line; 0 for a module.
    pub line: u64,
    /// Its name.
    pub name: String,
}

/// The places of calls, which are ordered by their start.
pub(crate) fn places(profile: &Profile, calls: &[(Span, NameId)]) -> Vec<Place> {
    let functions = enclosing(&profile.functions, calls);
    let operators = enclosing(&profile.operators, calls);
    functions
        .iter()
        .zip(&operators)
        .map(|(functions, operators)| place(profile, functions, operators))
        .collect()
}

fn place(profile: &Profile, functions: &[&Frame], operators: &[&Frame]) -> Place {
    let user = |frame: &&Frame| user_function(profile.name(frame.name));
    let at = functions.iter().rposition(|frame| user(frame).is_some());
    let below = at.and_then(|at| functions.get(at + 1));
    // The outermost operator of aten is what the program asked for; those around it are its own names.
    let mut names = operators.iter().map(|frame| profile.name(frame.name));
    let operator = names.clone().find(|name| name.starts_with("aten::")).or(names.next_back());
    Place {
        function: at.and_then(|at| user(&functions[at])),
        callee: below.and_then(|frame| callee(profile.name(frame.name))),
        operator: operator.map(str::to_owned),
        lines: Vec::new(),
    }
}

/// The function of this name, if it is the user's.
pub(crate) fn user_function(name: &str) -> Option<Function> {
    function(name).filter(is_of_user)
}

/// `examples/prefetcher/fixed.py(21): preload`.
fn function(name: &str) -> Option<Function> {
    let (file, rest) = name.split_once(".py(")?;
    let (line, name) = rest.split_once("): ")?;
    Some(Function { file: format!("{file}.py"), line: line.parse().ok()?, name: name.to_owned() })
}

fn is_of_user(function: &Function) -> bool {
    let file = function.file.as_str();
    !file.starts_with('<')
        && !LIBRARY
            .iter()
            .any(|part| file.starts_with(part) || part.ends_with('/') && file.contains(&format!("/{part}")))
}

/// The name of what a user's function called.
pub(crate) fn callee(name: &str) -> Option<String> {
    if let Some(inside) = name.strip_prefix("<built-in method ") {
        let (method, of) = inside.trim_end_matches('>').split_once(" of ")?;
        let of = of.split(' ').next().unwrap_or(of);
        return Some(if of == "type" { method.to_owned() } else { format!("{of}.{method}") });
    }
    if let Some(inside) = name.strip_prefix("<built-in function ") {
        return Some(inside.trim_end_matches('>').to_owned());
    }
    let function = function(name)?;
    let module = function.file.trim_end_matches(".py").trim_end_matches("/__init__").replace('/', ".");
    // The one class by its public name: its methods move whole models.
    let module = if module == "torch.nn.modules.module" { "torch.nn.Module" } else { &module };
    Some(format!("{module}.{}", function.name))
}

#[cfg(test)]
mod tests {
    use super::{callee, function, is_of_user};

    #[test]
    fn functions_by_name() {
        let found = function("examples/prefetcher/fixed.py(21): preload").unwrap();
        assert_eq!(
            (found.file.as_str(), found.line, found.name.as_str()),
            ("examples/prefetcher/fixed.py", 21, "preload")
        );
        assert!(is_of_user(&found));
        for library in [
            "torch/cuda/__init__.py(1152): synchronize",
            "<frozen runpy>.py(91): x",
            "contextlib.py(132): __enter__",
            "/usr/lib/python3/dist-packages/numpy/x.py(3): f",
            "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py(931): _apply",
        ] {
            assert!(!is_of_user(&function(library).unwrap()), "{library}");
        }
        assert!(is_of_user(&function("my_torch/queue.py(1): f").unwrap()));
        for odd in ["", "x.py", "x.py(", "x.py(a): f", "nn.Module: Linear_0", "<built-in function exec>"] {
            assert_eq!(function(odd), None, "{odd}");
        }
    }

    #[test]
    fn callees_by_name() {
        for (name, wanted) in [
            ("torch/cuda/__init__.py(1152): synchronize", Some("torch.cuda.synchronize")),
            ("torch/nn/modules/module.py(1080): cuda", Some("torch.nn.Module.cuda")),
            ("<built-in method item of Tensor object", Some("Tensor.item")),
            ("<built-in method rand of type object", Some("rand")),
            ("<built-in function _cuda_synchronize>", Some("_cuda_synchronize")),
            ("nn.Module: Linear_0", None),
        ] {
            assert_eq!(callee(name).as_deref(), wanted, "{name}");
        }
    }
}
