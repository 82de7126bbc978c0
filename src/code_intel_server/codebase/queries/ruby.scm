(method name: (_) @name) @definition.function
(singleton_method name: (_) @name) @definition.method
(class name: (_) @name) @definition.class
(module name: (_) @name) @definition.module
(assignment left: (constant) @name) @definition.constant
(alias name: (_) @name) @definition.method
(comment) @lead

;;; uses
(call method: (identifier) @call)
((call method: (identifier) @_require arguments: (argument_list (string) @import.module)) @import (#match? @_require "^(require|require_relative|load|autoload)$"))
