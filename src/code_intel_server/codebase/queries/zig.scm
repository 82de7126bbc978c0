(Decl (FnProto function: (IDENTIFIER) @name) (Block)? @body) @definition.function
(Decl (VarDecl variable_type_function: (IDENTIFIER) @name (ErrorUnionExpr (SuffixExpr (ContainerDecl (ContainerDeclType "struct")) @body)))) @definition.struct
(Decl (VarDecl variable_type_function: (IDENTIFIER) @name (ErrorUnionExpr (SuffixExpr (ContainerDecl (ContainerDeclType "enum")) @body)))) @definition.enum
(Decl (VarDecl variable_type_function: (IDENTIFIER) @name (ErrorUnionExpr (SuffixExpr (ContainerDecl (ContainerDeclType "union")) @body)))) @definition.union
(Decl (VarDecl variable_type_function: (IDENTIFIER) @name (ErrorUnionExpr (SuffixExpr (ErrorSetDecl) @body)))) @definition.enum
(Statement (VarDecl variable_type_function: (IDENTIFIER) @name (ErrorUnionExpr (SuffixExpr (ContainerDecl (ContainerDeclType "struct")) @body)))) @definition.struct
(Statement (VarDecl variable_type_function: (IDENTIFIER) @name (ErrorUnionExpr (SuffixExpr (ContainerDecl (ContainerDeclType "enum")) @body)))) @definition.enum
(Statement (VarDecl variable_type_function: (IDENTIFIER) @name (ErrorUnionExpr (SuffixExpr (ContainerDecl (ContainerDeclType "union")) @body)))) @definition.union
(Statement (VarDecl variable_type_function: (IDENTIFIER) @name (ErrorUnionExpr (SuffixExpr (ErrorSetDecl) @body)))) @definition.enum
(ErrorSetDecl field_constant: (IDENTIFIER) @name @definition.member)
(source_file (Decl (VarDecl "const" variable_type_function: (IDENTIFIER) @name)) @definition.constant)
(source_file (Decl (VarDecl "var" variable_type_function: (IDENTIFIER) @name)) @definition.variable)
(ContainerDecl (Decl (VarDecl variable_type_function: (IDENTIFIER) @name)) @definition.constant)
(ContainerField field_member: (IDENTIFIER) @name) @definition.field
(ContainerField . (ErrorUnionExpr (SuffixExpr variable_type_function: (IDENTIFIER) @name)) .) @definition.member
(TestDecl (STRINGLITERALSINGLE) @name (Block) @body) @definition.function
(line_comment) @lead
(doc_comment) @lead

;;; uses
(SuffixExpr variable_type_function: (IDENTIFIER) @call . (FnCallArguments))
(FieldOrFnCall function_call: (IDENTIFIER) @call)
((SuffixExpr (BUILTINIDENTIFIER) @_import (FnCallArguments (_) @import.module)) @import (#eq? @_import "@import"))
