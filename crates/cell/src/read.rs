//! JSON text into values; what is wrong with it is told by key.

use raidlab_device::DeviceSpec;
use raidlab_types::SpecError;
use serde_json::Value;

/// A sentence of serde's in the words of our own errors. The cell is one line that no user has written, so the position in
/// it is left out.
fn plain(sentence: &str) -> String {
    let sentence = sentence.split(" at line ").next().unwrap_or(sentence);
    match sentence.strip_prefix("unknown variant `").and_then(|rest| rest.split_once("`, expected ")) {
        Some((_, known)) => {
            format!("is not known here; accepted: {}", known.trim_start_matches("one of ").replace('`', ""))
        }
        None => sentence.to_owned(),
    }
}

/// Reads JSON text into `T`.
///
/// # Errors
/// What the text says that `T` does not have; its key begins with `place`.
pub fn from_json<T: serde::de::DeserializeOwned>(place: &str, text: &str) -> Result<T, SpecError> {
    from_reader(place, &mut serde_json::Deserializer::from_str(text))
}

/// Reads a device. What is read by its `kind` would lose the path of a key, so the kind is looked at first.
///
/// # Errors
/// As [`from_json`] has them.
pub fn device_from_json(text: &str) -> Result<DeviceSpec, SpecError> {
    let mut document: serde_json::Map<String, Value> = from_json("", text)?;
    let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "hdd" => variant(&mut document).map(DeviceSpec::Hdd),
        "ssd" => variant(&mut document).map(DeviceSpec::Ssd),
        "fixed" => variant(&mut document).map(DeviceSpec::Fixed),
        "empirical" => variant(&mut document).map(DeviceSpec::Empirical),
        "random" => variant(&mut document).map(DeviceSpec::Random),
        // Not known, which the enum itself says best.
        _ => from_json("", text),
    }
}

fn variant<T: serde::de::DeserializeOwned>(document: &mut serde_json::Map<String, Value>) -> Result<T, SpecError> {
    document.remove("kind");
    from_reader("", Value::Object(std::mem::take(document)))
}

fn from_reader<'de, T, D>(place: &str, reader: D) -> Result<T, SpecError>
where
    T: serde::de::DeserializeOwned,
    D: serde::Deserializer<'de>,
    D::Error: std::fmt::Display,
{
    serde_path_to_error::deserialize(reader).map_err(|e| {
        let path = e.path().to_string();
        let key = match (place, path.as_str()) {
            ("", path) => path.to_owned(),
            (place, "." | "") => place.to_owned(),
            (place, path) => format!("{place}.{path}"),
        };
        SpecError::new(key, plain(&e.inner().to_string()))
    })
}
