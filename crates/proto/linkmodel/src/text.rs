//! Fields that are either one text (`loss = "1%"`) or a table (`loss = { burst = … }`).

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use fault::Explain;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// Reads a `Text` from a string or a `Table` from a map, whichever is there. Unlike serde's
/// untagged enums it passes on what was wrong.
pub(crate) fn text_or_table<'de, D, Text, Table, Out>(
    deserializer: D,
    expecting: &'static str,
) -> Result<Out, D::Error>
where
    D: Deserializer<'de>,
    Text: FromStr<Err: Explain> + Into<Out>,
    Table: Deserialize<'de> + TryInto<Out, Error: Explain>,
{
    struct Either<Text, Table, Out>(&'static str, PhantomData<(Text, Table, Out)>);

    impl<'de, Text, Table, Out> Visitor<'de> for Either<Text, Table, Out>
    where
        Text: FromStr<Err: Explain> + Into<Out>,
        Table: Deserialize<'de> + TryInto<Out, Error: Explain>,
    {
        type Value = Out;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Out, E> {
            text.parse::<Text>().map(Into::into).map_err(|error| E::custom(error.in_one_text()))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Out, A::Error> {
            let table = Table::deserialize(MapAccessDeserializer::new(map))?;
            table.try_into().map_err(|error| A::Error::custom(error.in_one_text()))
        }
    }

    deserializer.deserialize_any(Either::<Text, Table, Out>(expecting, PhantomData))
}
