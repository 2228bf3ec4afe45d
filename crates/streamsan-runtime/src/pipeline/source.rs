//! Where items come from. A source writes into page-locked memory of the pipeline, so that nothing is copied twice.

use bytemuck::Pod;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Items one after the other.
pub trait Source<T> {
    /// Goes on to the next item and says how many elements it has; `None` after the last one. An error stands for
    /// an item that is not to be had; the next call goes on behind it.
    fn next_item(&mut self) -> Option<Result<usize, String>>;

    /// Writes the next elements of the item: as many as there is room for, never more than it has left.
    ///
    /// # Errors
    ///
    /// If they cannot be had. The item then fails, and the next call is [`Source::next_item`].
    fn fill(&mut self, room: &mut [T]) -> Result<(), String>;
}

/// Items of an iterator.
#[derive(Debug)]
pub struct Items<I, R> {
    iterator: I,
    current: Option<R>,
    done: usize,
}

impl<I: Iterator<Item = Result<R, E>>, R, E> Items<I, R> {
    /// An iterator's items: vectors, slices, or why there is none.
    pub fn new(items: impl IntoIterator<IntoIter = I>) -> Self {
        Self { iterator: items.into_iter(), current: None, done: 0 }
    }
}

impl<T: Pod, I: Iterator<Item = Result<R, E>>, R: AsRef<[T]>, E: Display> Source<T> for Items<I, R> {
    fn next_item(&mut self) -> Option<Result<usize, String>> {
        self.done = 0;
        self.current = None;
        match self.iterator.next()? {
            Ok(item) => {
                let length = item.as_ref().len();
                self.current = Some(item);
                Some(Ok(length))
            }
            Err(error) => Some(Err(error.to_string())),
        }
    }

    fn fill(&mut self, room: &mut [T]) -> Result<(), String> {
        let item = self.current.as_ref().map_or(&[][..], AsRef::as_ref);
        let part = item.get(self.done..self.done + room.len()).ok_or("the item became shorter")?;
        room.copy_from_slice(part);
        self.done += room.len();
        Ok(())
    }
}

/// Items of equal length from a file or another reader, the last one shorter if there is not enough.
///
/// ```
/// use streamsan_runtime::{ItemReader, Source};
/// let bytes: Vec<u8> = (0..10).flat_map(u16::to_le_bytes).collect();
/// let mut source = ItemReader::<u16, _>::new(bytes.as_slice(), 10, 4);
/// let mut room = [0; 4];
/// assert_eq!(source.next_item(), Some(Ok(4)));
/// source.fill(&mut room).unwrap();
/// assert_eq!(room, [0, 1, 2, 3]);
/// assert_eq!((source.next_item(), source.next_item()), (Some(Ok(4)), Some(Ok(2))));
/// ```
#[derive(Debug)]
pub struct ItemReader<T, R> {
    reader: R,
    /// Elements that are still to be read, those of the current item included.
    left: u64,
    item: usize,
    /// Elements of the current item that nobody has asked for.
    unread: usize,
    skipped: Vec<T>,
}

impl<T: Pod, R: Read> ItemReader<T, R> {
    /// Reads `elements` elements in items of `item`, in the machine's byte order.
    pub fn new(reader: R, elements: u64, item: usize) -> Self {
        Self { reader, left: elements, item: item.max(1), unread: 0, skipped: Vec::new() }
    }

    fn read(&mut self, room: &mut [T]) -> Result<(), String> {
        let read = self.reader.read_exact(bytemuck::cast_slice_mut(room));
        if let Err(error) = read {
            // Where the next item begins is not known any more.
            let rest = std::mem::take(&mut self.left);
            self.unread = 0;
            return Err(format!("{error}; the {rest} elements from here on are not read"));
        }
        self.left -= room.len() as u64;
        self.unread -= room.len();
        Ok(())
    }
}

impl<T: Pod> ItemReader<T, BufReader<File>> {
    /// Opens a file of elements.
    ///
    /// # Errors
    ///
    /// If it cannot be opened or does not consist of whole elements.
    pub fn open(path: &Path, item: usize) -> io::Result<Self> {
        let file = File::open(path)?;
        let (bytes, size) = (file.metadata()?.len(), size_of::<T>().max(1) as u64);
        if bytes % size != 0 {
            let message = format!(
                "{}: {bytes} bytes are not a whole number of elements of {size} bytes: is it of another type?",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(Self::new(BufReader::with_capacity(1 << 20, file), bytes / size, item))
    }
}

impl<T: Pod, R: Read> Source<T> for ItemReader<T, R> {
    fn next_item(&mut self) -> Option<Result<usize, String>> {
        // What was not asked for is skipped: the item was refused.
        while self.unread > 0 {
            let mut skipped = std::mem::take(&mut self.skipped);
            skipped.resize(self.unread.min(1 << 16), T::zeroed());
            if let Err(error) = self.read(&mut skipped) {
                return Some(Err(error));
            }
            self.skipped = skipped;
        }
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.item);
        self.unread = length;
        (length > 0).then_some(Ok(length))
    }

    fn fill(&mut self, room: &mut [T]) -> Result<(), String> {
        if room.len() > self.unread {
            return Err(format!("{} elements asked for, {} are left", room.len(), self.unread));
        }
        self.read(room)
    }
}
