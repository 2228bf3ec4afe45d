//! The `.sstrace` file.
