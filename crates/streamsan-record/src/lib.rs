//! The recorder inside a process: buffers, sites, the file.

pub mod table;
