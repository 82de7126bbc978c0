// A set-up file of vitest: adds a test that fails to the file that is run.
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import hook from './node_results.cjs'

const home = path.dirname(createRequire(path.join(process.cwd(), 'package.json')).resolve('vitest/package.json'))
const { test } = await import(pathToFileURL(path.join(home, 'dist', 'index.js')).href)

test(hook.canary, hook.mustFail)
