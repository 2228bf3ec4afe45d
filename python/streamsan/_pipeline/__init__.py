"""Bounded pipelines: a torch function over any number of CPU tensors, overlapped, in fixed device memory."""

from streamsan._pipeline.ahead import prefetch
from streamsan._pipeline.api import pipeline
from streamsan._pipeline.failures import ItemError, PipelineError
from streamsan._pipeline.files import FileSink, FileTensor, read_records, read_safetensors
from streamsan._pipeline.registration import page_lock
from streamsan._pipeline.results import Results, Statistics

__all__ = [
    "FileSink",
    "FileTensor",
    "ItemError",
    "PipelineError",
    "Results",
    "Statistics",
    "page_lock",
    "pipeline",
    "prefetch",
    "read_records",
    "read_safetensors",
]
