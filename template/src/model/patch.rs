//! Changes to one property, by JSON pointer.

use serde_json::{Map, Value};

pub(super) fn set(root: &mut Value, pointer: &str, value: Value) -> Result<(), String> {
    let (parents, last) = split(pointer)?;
    let mut at = root;
    for token in parents {
        at = match at {
            Value::Array(items) => {
                let length = items.len();
                items
                    .get_mut(index(&token, length)?)
                    .ok_or_else(|| beyond(&token, length))?
            }
            Value::Object(fields) => fields.entry(token).or_insert_with(|| Value::Object(Map::new())),
            _ => return Err(format!("{token:?} is in neither an object nor a list")),
        };
    }
    match at {
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let length = items.len();
            *items
                .get_mut(index(&last, length)?)
                .ok_or_else(|| beyond(&last, length))? = value;
        }
        Value::Object(fields) => {
            fields.insert(last, value);
        }
        _ => return Err(format!("{last:?} is in neither an object nor a list")),
    }
    Ok(())
}

pub(super) fn remove(root: &mut Value, pointer: &str) -> Result<Value, String> {
    let (parents, last) = split(pointer)?;
    let missing = || "there is no such property".to_owned();
    let mut at = root;
    for token in parents {
        at = match at {
            Value::Array(items) => {
                let length = items.len();
                items.get_mut(index(&token, length)?).ok_or_else(missing)?
            }
            Value::Object(fields) => fields.get_mut(&token).ok_or_else(missing)?,
            _ => return Err(missing()),
        };
    }
    match at {
        Value::Array(items) => {
            let index = index(&last, items.len())?;
            if index < items.len() {
                Ok(items.remove(index))
            } else {
                Err(missing())
            }
        }
        // Not swap_remove: the order of what is left stays.
        Value::Object(fields) => fields.shift_remove(&last).ok_or_else(missing),
        _ => Err(missing()),
    }
}

fn split(pointer: &str) -> Result<(Vec<String>, String), String> {
    let Some(path) = pointer.strip_prefix('/') else {
        return Err("a pointer starts with / and names a property".to_owned());
    };
    let mut tokens: Vec<_> = path
        .split('/')
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect();
    let last = tokens.pop().unwrap_or_default();
    if last.is_empty() {
        Err("the pointer names no property".to_owned())
    } else {
        Ok((tokens, last))
    }
}

fn index(token: &str, length: usize) -> Result<usize, String> {
    token
        .parse()
        .map_err(|_| format!("{token:?} is not an index into a list of {length}"))
}

fn beyond(token: &str, length: usize) -> String {
    format!("the list has {length} elements, none with index {token}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    #[test]
    fn setting_makes_missing_objects_and_leaves_the_rest() {
        let mut root = json!({ "A": 1, "L": [1, 2] });
        set(&mut root, "/B/C~1D", json!(true)).unwrap();
        set(&mut root, "/L/1", json!(3)).unwrap();
        set(&mut root, "/L/-", json!(4)).unwrap();
        assert_eq!(root, json!({ "A": 1, "L": [1, 3, 4], "B": { "C/D": true } }));
    }

    #[test]
    fn setting_refuses_what_it_cannot_reach() {
        let mut root = json!({ "A": 1, "L": [1] });
        for bad in ["A", "/", "/A/B", "/A/B/C", "/L/7", "/L/x", "/L/7/A"] {
            assert!(set(&mut root, bad, json!(0)).is_err(), "{bad}");
        }
        assert_eq!(root, json!({ "A": 1, "L": [1] }));
    }

    #[test]
    fn removing_keeps_the_order_of_what_is_left() {
        let mut root = json!({ "A": 1, "B": 2, "C": 3, "L": [1, 2] });
        assert_eq!(remove(&mut root, "/A").unwrap(), json!(1));
        assert_eq!(remove(&mut root, "/L/0").unwrap(), json!(1));
        assert_eq!(root.to_string(), r#"{"B":2,"C":3,"L":[2]}"#);
        assert!(remove(&mut root, "/A").is_err());
        assert!(remove(&mut root, "/L/1").is_err());
    }
}
