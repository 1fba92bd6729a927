//! Pages as a browser reads them.

mod contrast;
mod page;
