(rule_set (selectors (class_selector (class_name) @name))) @definition.selector
(rule_set (selectors (_ (class_selector (class_name) @name)))) @definition.selector
(rule_set (selectors (_ (_ (class_selector (class_name) @name))))) @definition.selector
(rule_set (selectors (id_selector (id_name) @name))) @definition.id
(rule_set (selectors (_ (id_selector (id_name) @name)))) @definition.id
(rule_set (selectors (placeholder) @name)) @definition.selector
(declaration (property_name) @name (#match? @name "^(--|\\$)")) @definition.variable
(mixin_statement name: (_) @name) @definition.macro
(function_statement name: (_) @name) @definition.function
(keyframes_statement (keyframes_name) @name) @definition.function
(comment) @lead

;;; uses
(include_statement (identifier) @call)
(call_expression (function_name) @call)
(import_statement (_) @import.module) @import
(use_statement (_) @import.module) @import
(forward_statement (_) @import.module) @import
