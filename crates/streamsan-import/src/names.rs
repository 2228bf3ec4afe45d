//! Names, each kept once.

use rustc_hash::FxHashMap;

/// Bytes of a name that are kept: kernels have names of kilobytes, and their start says what they are.
const LONGEST: usize = 256;
/// How many different names are kept. What comes later is called [`OTHER`].
const MOST: usize = 1 << 20;
/// The name of what has none, and of all names after the first million.
pub(crate) const OTHER: &str = "(unnamed)";

/// One name in [`Names`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameId(u32);

/// Every name that occurs.
#[derive(Debug)]
pub(crate) struct Names {
    texts: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, NameId>,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self { texts: Vec::new(), ids: FxHashMap::default() };
        names.id(OTHER);
        names
    }
}

impl Names {
    /// The id of a name.
    pub(crate) fn id(&mut self, name: &str) -> NameId {
        let kept = shortened(without_address(name));
        if let Some(&id) = self.ids.get(kept) {
            return id;
        }
        if self.texts.len() >= MOST {
            return NameId::default();
        }
        let id = NameId(self.texts.len() as u32);
        self.texts.push(kept.into());
        self.ids.insert(kept.into(), id);
        id
    }

    /// The name of an id.
    pub(crate) fn text(&self, id: NameId) -> &str {
        self.texts.get(id.0 as usize).map_or(OTHER, |text| text)
    }
}

/// `<built-in method item of Tensor object at 0x7f…>` without the address, which is another one each time.
fn without_address(name: &str) -> &str {
    if name.starts_with('<') { name.split(" at 0x").next().unwrap_or(name) } else { name }
}

fn shortened(name: &str) -> &str {
    if name.len() <= LONGEST {
        return name;
    }
    let end = (0..=LONGEST).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, NameId, Names, OTHER};

    #[test]
    fn each_is_kept_once_and_not_too_long() {
        let mut names = Names::default();
        let first = names.id("<built-in method item of Tensor object at 0x7f01>");
        assert_eq!(first, names.id("<built-in method item of Tensor object at 0x7f02>"));
        assert_eq!(names.text(first), "<built-in method item of Tensor object");
        let long = names.id(&"ü".repeat(1000));
        assert_eq!(names.text(long).len(), LONGEST);
        assert_eq!(names.text(NameId::default()), OTHER);
    }
}
