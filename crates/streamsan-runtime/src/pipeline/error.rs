//! Why an item has no result, and why there is no pipeline.

use crate::error::Error;
use crate::plan::PlanError;
use std::fmt;

/// Why an item has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemError {
    /// Which item, from 0.
    pub item: u64,
    /// Where: `source`, `upload`, `function`, `download` or `sink`.
    pub stage: &'static str,
    /// What was said.
    pub message: String,
}

impl fmt::Display for ItemError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "item {}: {}: {}", self.item, self.stage, self.message)
    }
}

impl std::error::Error for ItemError {}

/// Why a pipeline could not be made.
#[derive(Clone, Debug, PartialEq)]
pub enum PipelineError {
    /// The budget does not hold.
    Plan(PlanError),
    /// The device refused.
    Device(Error),
}

impl fmt::Display for PipelineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(formatter),
            Self::Device(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for PipelineError {}
