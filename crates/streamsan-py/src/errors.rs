//! The exceptions of `streamsan._errors`.

pyo3::import_exception!(streamsan._errors, CaptureError);
pyo3::import_exception!(streamsan._errors, TraceError);
