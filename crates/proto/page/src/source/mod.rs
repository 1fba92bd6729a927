//! Where pages come from, besides their own text and HAR.

pub mod listing;
pub mod paper;

mod make;
mod markup;
