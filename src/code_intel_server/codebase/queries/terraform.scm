(config_file (body (block (identifier) . (string_lit) @name . (block_start) (body)? @body) @definition.resource))
(config_file (body (block (identifier) . (string_lit) @scope . (string_lit) @name . (block_start) (body)? @body) @definition.resource))
(config_file (body (block . (identifier) @name . (block_start) (body)? @body) @definition.section))
(config_file (body (attribute (identifier) @name) @definition.key))
((config_file (body (block . (identifier) @_locals (body (attribute (identifier) @name) @definition.variable)))) (#eq? @_locals "locals"))
(comment) @lead

;;; uses
(function_call (identifier) @call)
