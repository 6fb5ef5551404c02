//! Times on the border to Python: written in nanoseconds, held in the unit that a model computes in.
//!
//! Purpose: a cell says every time in nanoseconds. A field whose name ends in another unit is read through one of these
//! modules: `#[serde(with = "raidlab_types::unit::ns_as_us")]`.
//!
//! Reference: `docs/internals/cell-contract.md`.

macro_rules! nanoseconds_as {
    ($name:ident, $ns:literal, $unit:literal) => {
        #[doc = concat!("A time in ", $unit, ", written in nanoseconds.")]
        pub mod $name {
            use serde::{Deserialize, Deserializer, Serializer};

            #[doc = concat!("Writes ", $unit, " as nanoseconds.")]
            pub fn serialize<S: Serializer>(time: &f64, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_f64(time * $ns)
            }

            #[doc = concat!("Reads nanoseconds as ", $unit, ".")]
            pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
                Ok(f64::deserialize(from)? / $ns)
            }
        }
    };
}

nanoseconds_as!(ns_as_us, 1e3, "microseconds");
nanoseconds_as!(ns_as_ms, 1e6, "milliseconds");

/// A time in seconds, or none, written in nanoseconds.
pub mod ns_as_s_option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes seconds as nanoseconds.
    pub fn serialize<S: Serializer>(time: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        time.map(|time| time * 1e9).serialize(to)
    }

    /// Reads nanoseconds as seconds.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<f64>::deserialize(from)?.map(|ns| ns / 1e9))
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Costs {
        #[serde(rename = "cost", with = "super::ns_as_us")]
        cost_us: f64,
        #[serde(default, rename = "duration", with = "super::ns_as_s_option")]
        duration_s: Option<f64>,
    }

    #[test]
    fn nanoseconds_are_read_and_written_back() {
        let costs: Costs = serde_json::from_str(r#"{"cost": 700, "duration": 1500000000}"#).unwrap();
        assert_eq!(costs, Costs { cost_us: 0.7, duration_s: Some(1.5) });
        let again = serde_json::from_str(&serde_json::to_string(&costs).unwrap()).unwrap();
        assert_eq!(costs, again);
        let costs: Costs = serde_json::from_str(r#"{"cost": 1}"#).unwrap();
        assert_eq!(costs, Costs { cost_us: 0.001, duration_s: None });
        assert!(serde_json::from_str::<Costs>(r#"{"cost": "1us"}"#).is_err());
    }
}
