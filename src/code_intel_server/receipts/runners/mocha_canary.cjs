'use strict'
const name = process.env.CODE_INTEL_CANARY
/* global it */
it(name, () => {
  throw new Error(name)
})
