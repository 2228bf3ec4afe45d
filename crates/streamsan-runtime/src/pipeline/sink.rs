//! Where results go.

use super::error::ItemError;
use bytemuck::Pod;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Elements of one item's result. An item that was cut comes in several parts, in order.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a, T> {
    /// Which item, from 0.
    pub item: u64,
    /// Its elements before these.
    pub first: usize,
    /// How many elements it has.
    pub total: usize,
    /// These elements. They are in a slot that is used again: copy what is to stay.
    pub values: &'a [T],
}

impl<T> Part<'_, T> {
    /// Whether the item has no elements after these.
    pub fn is_last(&self) -> bool {
        self.first + self.values.len() >= self.total
    }
}

/// Results one after the other, in the order of the items.
pub trait Sink<T> {
    /// Takes a part.
    ///
    /// # Errors
    ///
    /// If it cannot. The item then fails; no further part of it comes, and no [`Sink::failed`].
    fn part(&mut self, part: &Part<'_, T>) -> Result<(), String>;

    /// An item has no result, or none from here on. `total` is how many elements it has, 0 if the source did not say.
    fn failed(&mut self, error: &ItemError, total: usize);
}

/// A function that gets each item whole.
pub(super) struct Each<F, T> {
    function: F,
    whole: Vec<T>,
}

impl<F, T> Each<F, T> {
    pub(super) fn new(function: F) -> Self {
        Self { function, whole: Vec::new() }
    }
}

impl<T: Pod, F: FnMut(u64, Result<&[T], ItemError>)> Sink<T> for Each<F, T> {
    fn part(&mut self, part: &Part<'_, T>) -> Result<(), String> {
        if part.first == 0 && part.is_last() {
            (self.function)(part.item, Ok(part.values));
            return Ok(());
        }
        self.whole.extend_from_slice(part.values);
        if part.is_last() {
            (self.function)(part.item, Ok(&self.whole));
            self.whole.clear();
        }
        Ok(())
    }

    fn failed(&mut self, error: &ItemError, _: usize) {
        self.whole.clear();
        (self.function)(error.item, Err(error.clone()));
    }
}

/// Results one behind the other in a slice. The place of an item that failed stays as it was.
#[derive(Debug)]
pub struct SliceSink<'a, T> {
    target: &'a mut [T],
    /// Where the item begins.
    begin: usize,
}

impl<'a, T> SliceSink<'a, T> {
    /// Fills a slice from its start.
    pub fn new(target: &'a mut [T]) -> Self {
        Self { target, begin: 0 }
    }
}

impl<T: Pod> Sink<T> for SliceSink<'_, T> {
    fn part(&mut self, part: &Part<'_, T>) -> Result<(), String> {
        let (begin, room) = (self.begin + part.first, self.target.len());
        if part.is_last() {
            self.begin += part.total;
        }
        let Some(target) = self.target.get_mut(begin..begin + part.values.len()) else {
            self.begin = room;
            return Err(format!("{} elements from {begin} on do not fit into {room}", part.values.len()));
        };
        target.copy_from_slice(part.values);
        Ok(())
    }

    fn failed(&mut self, _: &ItemError, total: usize) {
        self.begin += total;
    }
}

/// Results one behind the other in a file or another writer, in the machine's byte order. The place of an item that
/// failed is zeros.
#[derive(Debug)]
pub struct ItemWriter<W> {
    writer: W,
    /// Elements of the current item that were written.
    written: usize,
}

impl<W: Write> ItemWriter<W> {
    /// Writes to a writer.
    pub fn new(writer: W) -> Self {
        Self { writer, written: 0 }
    }

    /// The writer, with everything written.
    ///
    /// # Errors
    ///
    /// What the writer says.
    pub fn finish(mut self) -> io::Result<W> {
        self.writer.flush()?;
        Ok(self.writer)
    }
}

impl ItemWriter<BufWriter<File>> {
    /// Creates a file, or empties it.
    ///
    /// # Errors
    ///
    /// If it cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self::new(BufWriter::with_capacity(1 << 20, File::create(path)?)))
    }
}

impl<T: Pod, W: Write> Sink<T> for ItemWriter<W> {
    fn part(&mut self, part: &Part<'_, T>) -> Result<(), String> {
        self.written = if part.is_last() { 0 } else { part.first + part.values.len() };
        self.writer.write_all(bytemuck::cast_slice(part.values)).map_err(|error| error.to_string())
    }

    fn failed(&mut self, _: &ItemError, total: usize) {
        let zero = T::zeroed();
        for _ in std::mem::take(&mut self.written)..total {
            // An error comes again with the next part, or at the end.
            let _ = self.writer.write_all(bytemuck::bytes_of(&zero));
        }
    }
}
