(module_attribute name: (atom) @name) @definition.module
(fun_decl clause: (function_clause name: (atom) @name args: (_) @arity body: (_) @body)) @definition.function @clause
(record_decl name: (atom) @name) @definition.struct
(type_alias name: (type_name name: (atom) @name)) @definition.type
(opaque name: (type_name name: (atom) @name)) @definition.type
(pp_define lhs: (macro_lhs name: (_) @name)) @definition.macro
(comment) @lead
(spec) @lead

;;; uses
(call expr: (atom) @call)
(call expr: (remote fun: (atom) @call))
(import_attribute module: (atom) @import.module) @import
(pp_include file: (_) @import.module) @import
(pp_include_lib file: (_) @import.module) @import
