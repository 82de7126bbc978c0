#include <vector>
#include "price.hpp"

namespace shop {

template <typename T>
class Price : public Base<T> {
public:
    explicit Price(T amount) : amount_(amount) {}
    virtual ~Price() = default;
    virtual void sell() = 0;
    bool operator==(const Price &other) const { return amount_ == other.amount_; }
    static int count;

    struct Inner {
        void deep() {}
    };

private:
    T amount_;
};

enum class State { Open, Closed };

using Name = std::string;

void Shop::close(int code) {
    std::exit(code);
}

std::vector<int> &items() { return all; }

namespace detail {
auto helper = [](int x) { return x; };
}

}  // namespace shop

int main() {
    shop::items().clear();
    return 0;
}
