;;; like html
(frontmatter (frontmatter_js_block) @inject.typescript)
