use std::{fmt, io};

pub const LIMIT: u32 = 10;
static mut TOTAL: u32 = 0;

/// A price.
#[derive(Debug)]
pub struct Price<T> {
    amount: T,
}

pub enum State {
    Open,
    Closed { reason: String },
}

pub trait Repository {
    type Item;
    fn find(&self, id: u32) -> Option<Self::Item>;
}

impl<T: fmt::Debug> Repository for Price<T> {
    type Item = T;

    fn find(&self, id: u32) -> Option<T> {
        helper::<T>(id);
        None
    }
}

impl<T> Price<T> {
    pub async fn load() -> io::Result<Self> {
        fn inner() {}
        todo!()
    }
}

macro_rules! twice {
    ($x:expr) => {
        $x * 2
    };
}

mod nested {
    pub fn deep() {}
}

#[cfg(test)]
mod tests {
    #[test]
    fn works() {
        assert_eq!(1, 1);
    }
}
