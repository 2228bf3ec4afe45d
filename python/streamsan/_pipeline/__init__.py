"""Bounded pipelines: a torch function over any number of CPU tensors, overlapped, in fixed device memory."""

from streamsan._pipeline.api import pipeline
from streamsan._pipeline.failures import ItemError, PipelineError
from streamsan._pipeline.results import Results, Statistics

__all__ = ["ItemError", "PipelineError", "Results", "Statistics", "pipeline"]
