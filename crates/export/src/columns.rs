//! A table's columns, from one list: the fields of a struct.

use std::borrow::Cow;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Bool,
    /// A signed 64-bit number.
    Integer,
    /// A 64-bit floating-point number.
    Float,
    /// Text in UTF-8.
    Text,
}

/// One value of a row, by its column's [`Kind`].
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// Not known: `null` in JSON and in Parquet.
    Null,
    /// True or false.
    Bool(bool),
    /// A number; what is larger than a signed 64-bit number holds became the largest one.
    Integer(i64),
    /// A 64-bit floating-point number.
    Float(f64),
    /// Text, as it is.
    Text(Cow<'a, str>),
}

/// A column: how it is called and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The field's name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether values may be missing.
    pub optional: bool,
}

/// A row of a table whose columns are known.
pub trait Table {
    /// The table's name.
    const NAME: &'static str;
    /// The kind of its rows in JSON.
    const ROW: &'static str;
    /// All columns, in order.
    const COLUMNS: &'static [Column];

    /// Gives all values to `take`, in the order of the columns.
    fn values<'a>(&'a self, take: impl FnMut(Value<'a>));

    /// The time that says to which hour the row belongs, nanoseconds since the epoch.
    fn time(&self) -> u64;
}

/// A type that a column can be made of.
pub(crate) trait Field {
    const KIND: Kind;
    const OPTIONAL: bool = false;

    fn value(&self) -> Value<'_>;
}

impl Field for bool {
    const KIND: Kind = Kind::Bool;

    fn value(&self) -> Value<'_> {
        Value::Bool(*self)
    }
}

impl Field for u64 {
    const KIND: Kind = Kind::Integer;

    fn value(&self) -> Value<'_> {
        Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}

impl Field for u32 {
    const KIND: Kind = Kind::Integer;

    fn value(&self) -> Value<'_> {
        Value::Integer((*self).into())
    }
}

impl Field for u16 {
    const KIND: Kind = Kind::Integer;

    fn value(&self) -> Value<'_> {
        Value::Integer((*self).into())
    }
}

impl Field for u8 {
    const KIND: Kind = Kind::Integer;

    fn value(&self) -> Value<'_> {
        Value::Integer((*self).into())
    }
}

impl Field for f64 {
    const KIND: Kind = Kind::Float;

    fn value(&self) -> Value<'_> {
        Value::Float(*self)
    }
}

impl Field for String {
    const KIND: Kind = Kind::Text;

    fn value(&self) -> Value<'_> {
        Value::Text(self.into())
    }
}

impl Field for Vec<String> {
    const KIND: Kind = Kind::Text;

    fn value(&self) -> Value<'_> {
        Value::Text(joined(self))
    }
}

impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;

    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, T::value)
    }
}

/// The entries with commas between them, one inside of an entry being written `%2C`.
fn joined(list: &[String]) -> Cow<'_, str> {
    match list {
        [] => Cow::Borrowed(""),
        [only] => escaped(only),
        more => more.iter().map(|entry| escaped(entry)).collect::<Vec<_>>().join(",").into(),
    }
}

fn escaped(entry: &str) -> Cow<'_, str> {
    if entry.contains([',', '%']) {
        entry.replace('%', "%25").replace(',', "%2C").into()
    } else {
        entry.into()
    }
}

/// Declares the struct of a row and its columns at once.
macro_rules! table {
    (
        $(#[$about:meta])*
        pub struct $row:ident: $table:literal of $kind:literal at $time:ident {
            $($(#[$doc:meta])* $name:ident: $type:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $row {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl $crate::columns::Table for $row {
            const NAME: &'static str = $table;
            const ROW: &'static str = $kind;
            const COLUMNS: &'static [$crate::columns::Column] = &[$(
                $crate::columns::Column {
                    name: stringify!($name),
                    kind: <$type as $crate::columns::Field>::KIND,
                    optional: <$type as $crate::columns::Field>::OPTIONAL,
                },
            )*];

            fn values<'a>(&'a self, mut take: impl FnMut($crate::columns::Value<'a>)) {
                $(take($crate::columns::Field::value(&self.$name));)*
            }

            fn time(&self) -> u64 {
                self.$time
            }
        }
    };
}

pub(crate) use table;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_one_text_that_can_be_taken_apart() {
        let list = |entries: &[&str]| entries.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (entries, text) in [
            (&[][..], ""),
            (&["h2"], "h2"),
            (&["h2", "http/1.1"], "h2,http/1.1"),
            (&["a,b", "50%", "%2C"], "a%2Cb,50%25,%252C"),
        ] {
            let list = list(entries);
            assert_eq!(list.value(), Value::Text(text.into()));
            let apart: Vec<_> = text
                .split(',')
                .filter(|entry| !entry.is_empty())
                .map(|entry| entry.replace("%2C", ",").replace("%25", "%"))
                .collect();
            assert_eq!(apart, list);
        }
    }

    #[test]
    fn a_number_too_large_becomes_the_largest() {
        assert_eq!(u64::MAX.value(), Value::Integer(i64::MAX));
        assert_eq!(Some(5_u64).value(), Value::Integer(5));
        assert_eq!(None::<u64>.value(), Value::Null);
    }
}
