(message (message_name) @name (message_body) @body) @definition.message
(enum (enum_name) @name (enum_body) @body) @definition.enum
(enum_field (identifier) @name) @definition.member
(service (service_name) @name) @definition.service
(rpc (rpc_name) @name) @definition.rpc
(field (identifier) @name) @definition.field
(map_field (identifier) @name) @definition.field
(oneof (identifier) @name) @definition.union
(oneof_field (identifier) @name) @definition.field
(package (full_ident) @name) @definition.module
(comment) @lead

;;; uses
(import path: (string) @import.module) @import
(message_or_enum_type) @type
(field (type) @type)
