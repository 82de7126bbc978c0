(element [(STag (Attribute (Name) @_id (AttValue) @name)) (EmptyElemTag (Attribute (Name) @_id (AttValue) @name))] (#match? @_id "^(id|xml:id)$")) @definition.id
(Comment) @lead
