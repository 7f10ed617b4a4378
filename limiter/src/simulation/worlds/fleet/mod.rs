//! Many processes that share one bucket: what an admission costs, and that no call fails while the table responds.

mod load;
mod reference;
mod run;
mod tests;
