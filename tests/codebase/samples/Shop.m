#import <Foundation/Foundation.h>
#import "Price.h"

#define LIMIT 10

@protocol Repository <NSObject>
- (Price *)findById:(int)identifier;
@end

@interface Shop : NSObject
@property (nonatomic, strong) NSString *name;
- (instancetype)initWithName:(NSString *)name;
+ (Shop *)shared;
@end

@implementation Shop

- (instancetype)initWithName:(NSString *)name {
    self = [super init];
    return self;
}

+ (Shop *)shared {
    return nil;
}

@end

int sell(int price) {
    return price + LIMIT;
}
