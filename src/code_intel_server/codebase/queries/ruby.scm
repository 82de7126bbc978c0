(method name: (_) @name) @definition.function
(singleton_method name: (_) @name) @definition.method
(class name: (_) @name) @definition.class
(module name: (_) @name) @definition.module
(assignment left: [(constant) (scope_resolution name: (constant))] @name) @definition.constant
(assignment left: (left_assignment_list (constant) @name)) @definition.constant
(operator_assignment left: (constant) @name operator: "||=") @definition.constant
(alias name: (_) @name) @definition.method
((call !receiver method: (identifier) @_attribute arguments: (argument_list (simple_symbol) @name)) @definition.property (#match? @_attribute "^(attr_(accessor|reader|writer)|attr|[cm]attr_(accessor|reader|writer)|class_attribute)$"))
((call !receiver method: (identifier) @_define arguments: (argument_list . (simple_symbol) @name)) @definition.method (#match? @_define "^(define_method|alias_method)$"))
((call receiver: (constant) @_Struct method: (identifier) @_new arguments: (argument_list (simple_symbol) @name) @definition.property) (#eq? @_Struct "Struct") (#eq? @_new "new"))
(comment) @lead

;;; uses
(call method: [(identifier) (constant)] @call)
((call !receiver method: (identifier) @_require arguments: (argument_list (string) @import.module)) @import (#match? @_require "^(require|require_relative|load|autoload)$"))
