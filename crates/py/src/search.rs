//! The search for the queue depth at which a percentile of response time equals a target.

use crate::answer::dict;
use crate::error::spec_error;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_types::number::{f64_from, saturating_u64};

/// See `raidlab_load::DepthSearch`.
#[pyclass(module = "raidlab._core")]
pub(crate) struct DepthSearch {
    inner: raidlab_load::DepthSearch,
}

#[pymethods]
impl DepthSearch {
    #[new]
    fn new(percentile: f64, target_ns: u64, max_depth: u32) -> PyResult<Self> {
        let inner = raidlab_load::DepthSearch::new(percentile, target_ns, max_depth).map_err(spec_error)?;
        Ok(DepthSearch { inner })
    }

    /// The depth to run next; None once there is an answer.
    fn next(&self) -> Option<u32> {
        self.inner.next()
    }

    /// Reports a run at `depth`: its response time histogram and its throughput in any unit.
    fn report(
        &mut self,
        depth: u32,
        value_ns: PyReadonlyArray1<'_, u64>,
        count: PyReadonlyArray1<'_, u64>,
        throughput: f64,
    ) {
        let (values, counts) = (value_ns.as_array(), count.as_array());
        let total: u64 = counts.iter().sum();
        // The nearest-rank percentile: the smallest value that at least this share of the requests does not exceed.
        let wanted = saturating_u64((self.inner.percentile() / 100.0 * f64_from(total)).ceil().max(1.0));
        let mut seen = 0;
        let found = values.iter().zip(counts.iter()).find(|(_, &n)| {
            seen += n;
            seen >= wanted
        });
        let percentile_ns = found.map_or(0, |(&value, _)| value);
        self.inner.report(depth, percentile_ns, throughput);
    }

    /// `kind` (between, never_exceeded, always_exceeded), interpolated `depth` and `throughput`, and the bounding points
    /// `lower` and `upper` (None where there is none); None while a run is still needed.
    fn answer<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(answer) = self.inner.answer() else { return Ok(None) };
        dict(py, &raidlab_cell::held(&answer)).map(Some)
    }
}
