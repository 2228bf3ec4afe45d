//! Placeholder until its first test exists.
