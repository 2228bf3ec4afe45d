//! The C table's functions.
