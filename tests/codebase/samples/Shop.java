package com.example.shop;

import java.util.List;
import static java.lang.Math.max;

/** A shop. */
@Service
public class Shop<T extends Price> implements Seller {
    public static final int LIMIT = 10;
    private List<T> items, more;

    public Shop(int size) {
        this.items = new ArrayList<>();
    }

    @Override
    public <R> R sell(T price) throws ShopException {
        return items.get(max(1, 2)).handle();
    }

    static class Inner {
        void deep() {}
    }
}

interface Seller {
    void open();

    default void close() {}
}

enum State {
    OPEN, CLOSED;

    boolean isOpen() {
        return this == OPEN;
    }
}

record Point(int x, int y) {
    Point {
        assert x > 0;
    }
}

@interface Marked {
    String value() default "";
}
