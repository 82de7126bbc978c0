-- prices
CREATE TABLE IF NOT EXISTS shop.prices (
    id INTEGER PRIMARY KEY,
    amount NUMERIC NOT NULL
);

CREATE VIEW cheap AS
SELECT * FROM shop.prices WHERE amount < 10;

CREATE UNIQUE INDEX prices_amount ON shop.prices (amount);

CREATE FUNCTION double_it(x INTEGER) RETURNS INTEGER AS $$
    SELECT x * 2;
$$ LANGUAGE sql;

CREATE TYPE mood AS ENUM ('sad', 'ok');

ALTER TABLE shop.prices ADD COLUMN currency TEXT;
