'use strict'
module.exports = require('./node_results.cjs').Jest
