(header module: (module) @name) @definition.module
(data_type name: (_) @name) @definition.type
(newtype name: (_) @name) @definition.type
(type_synomym name: (_) @name) @definition.type
(type_family name: (_) @name) @definition.type
(data_constructor constructor: (record name: (constructor) @name)) @definition.member
(data_constructor constructor: (prefix name: (constructor) @name)) @definition.member
(newtype_constructor name: (constructor) @name) @definition.member
(class name: (_) @name declarations: (_)? @body) @definition.interface
(instance name: (_) @name declarations: (_)? @body) @definition.impl
(field (field_name (variable) @name)) @definition.field
(declarations (function name: (variable) @name match: (_) @body) @definition.function @clause)
(declarations (bind name: (variable) @name match: (_) @body) @definition.function @clause)
(declarations (signature name: (variable) @name) @definition.function @clause)
(class_declarations (signature name: (variable) @name) @definition.method @clause)
(class_declarations (function name: (variable) @name) @definition.method @clause)
(instance_declarations (function name: (variable) @name) @definition.method @clause)
(instance_declarations (bind name: (variable) @name) @definition.method @clause)
(local_binds (function name: (variable) @name) @definition.function @clause)
(declarations (signature name: (prefix_id (operator) @name)) @definition.function @clause)
(declarations (function name: (prefix_id (operator) @name) match: (_) @body) @definition.function @clause)
(declarations (bind name: (prefix_id (operator) @name) match: (_) @body) @definition.function @clause)
(declarations (function (infix operator: [(operator) @name (infix_id (variable) @name)]) match: (_) @body) @definition.function @clause)
(class_declarations (signature name: (prefix_id (operator) @name)) @definition.method @clause)
(class_declarations (function name: (prefix_id (operator) @name)) @definition.method @clause)
(class_declarations (function (infix operator: [(operator) @name (infix_id (variable) @name)])) @definition.method @clause)
(instance_declarations (function name: (prefix_id (operator) @name)) @definition.method @clause)
(instance_declarations (bind name: (prefix_id (operator) @name)) @definition.method @clause)
(instance_declarations (function (infix operator: [(operator) @name (infix_id (variable) @name)])) @definition.method @clause)
(comment) @lead
(haddock) @lead

;;; uses
(apply function: (variable) @call)
(apply function: (qualified id: (variable) @call))
(import module: (module) @import.module) @import
