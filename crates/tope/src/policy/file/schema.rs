//! The JSON Schema of a policy file, for editors.

use serde_json::{Map, Value};

use super::File;

/// The JSON Schema (draft 2020-12) of a policy file.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(File).to_value();
    without_null(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".to_owned(), "tope policy".into());
    }
    schema
}

/// A field may be left out; it may not be empty. `Option` says both.
fn without_null(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Object(object) => {
            object.values_mut().for_each(without_null);
            drop_null_type(object);
            drop_null_branch(object);
        }
        _ => {}
    }
}

fn drop_null_type(object: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = object.get_mut("type") else { return };
    types.retain(|word| word != "null");
    if let [only] = types.as_slice() {
        let only = only.clone();
        object.insert("type".to_owned(), only);
    }
}

fn drop_null_branch(object: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = object.get_mut("anyOf") else { return };
    branches.retain(|branch| branch.get("type").is_none_or(|word| word != "null"));
    if let [Value::Object(only)] = branches.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        for (name, value) in only {
            object.entry(name).or_insert(value);
        }
    }
}
