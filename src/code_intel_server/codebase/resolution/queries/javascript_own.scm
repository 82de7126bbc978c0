(class_body (field_definition property: (_) @name value: (_)? @value) @decl.field)
(formal_parameters (identifier) @name @decl.parameter)
(formal_parameters (assignment_pattern left: (identifier) @name right: (_) @value) @decl.parameter)
(formal_parameters (rest_pattern (identifier) @name) @decl.several)
