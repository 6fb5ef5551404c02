//! Times on the border to Python: written in nanoseconds, held in the unit that a model computes in.
//!
//! Purpose: a cell says every time in nanoseconds. A field whose name ends in another unit is read through one of these
//! modules: `#[serde(with = "raidlab_types::unit::ns_as_us")]`.
//!
//! Reference: `docs/internals/cell-contract.md`.

macro_rules! nanoseconds_as {
    ($one:ident, $option:ident, $ns:literal, $unit:literal) => {
        #[doc = concat!("A time in ", $unit, ", written in nanoseconds.")]
        pub mod $one {
            use serde::{Deserialize, Deserializer, Serializer};

            #[doc = concat!("Writes ", $unit, " as nanoseconds.")]
            ///
            /// # Errors
            /// Those of the serializer.
            pub fn serialize<S: Serializer>(time: &f64, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_f64(time * $ns)
            }

            #[doc = concat!("Reads nanoseconds as ", $unit, ".")]
            ///
            /// # Errors
            /// If there is no number.
            pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
                Ok(f64::deserialize(from)? / $ns)
            }
        }

        #[doc = concat!("A time in ", $unit, ", or none, written in nanoseconds.")]
        pub mod $option {
            use serde::{Deserialize, Deserializer, Serialize, Serializer};

            #[doc = concat!("Writes ", $unit, " as nanoseconds.")]
            ///
            /// # Errors
            /// Those of the serializer.
            pub fn serialize<S: Serializer>(time: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
                time.map(|time| time * $ns).serialize(to)
            }

            #[doc = concat!("Reads nanoseconds as ", $unit, ".")]
            ///
            /// # Errors
            /// If there is something that is no number.
            pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
                Ok(Option::<f64>::deserialize(from)?.map(|ns| ns / $ns))
            }
        }
    };
}

nanoseconds_as!(ns_as_us, ns_as_us_option, 1e3, "microseconds");
nanoseconds_as!(ns_as_ms, ns_as_ms_option, 1e6, "milliseconds");
nanoseconds_as!(ns_as_s, ns_as_s_option, 1e9, "seconds");

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Times {
        #[serde(rename = "cost", with = "super::ns_as_us")]
        cost_us: f64,
        #[serde(default, rename = "duration", with = "super::ns_as_s_option")]
        duration_s: Option<f64>,
    }

    #[test]
    fn nanoseconds_are_read_and_written_back() {
        let times: Times = serde_json::from_str(r#"{"cost": 700, "duration": 1500000000}"#).unwrap();
        assert_eq!(times, Times { cost_us: 0.7, duration_s: Some(1.5) });
        let again = serde_json::from_str(&serde_json::to_string(&times).unwrap()).unwrap();
        assert_eq!(times, again);
        let times: Times = serde_json::from_str(r#"{"cost": 1}"#).unwrap();
        assert_eq!(times, Times { cost_us: 0.001, duration_s: None });
        assert!(serde_json::from_str::<Times>(r#"{"cost": "1us"}"#).is_err());
    }
}
