// A reporter of `node --test`: yields one JSON line an event. A test's id is its file and the names above it.
import path from 'node:path'

const unit = (file) => (file ? path.relative(process.cwd(), file) : '')
const line = (event) => JSON.stringify(event) + '\n'

export default async function* (source) {
  const open = new Map()
  for await (const { type, data } of source) {
    const names = open.get(data?.file) ?? open.set(data?.file, []).get(data?.file)
    const id = () => unit(data.file) + ' > ' + [...names.slice(0, data.nesting), data.name].join(' > ')
    if (type === 'test:start') {
      names[data.nesting] = data.name
      yield line({ event: 'start', id: id(), unit: unit(data.file) })
    } else if (type === 'test:pass' || type === 'test:fail') {
      const error = data.details?.error
      if (type === 'test:fail' && data.nesting === 0 && path.resolve(data.name) === data.file) {
        yield line({ event: 'unbuilt', unit: unit(data.file), message: String(error?.message ?? '') })
      }
      const skipped = data.skip !== undefined || data.todo !== undefined
      const outcome = skipped ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed'
      const cause = error?.cause ?? error
      const message = type === 'test:fail' ? String(cause?.stack ?? cause).slice(-1500) : ''
      yield line({ event: 'end', id: id(), unit: unit(data.file), outcome, seconds: (data.details?.duration_ms ?? 0) / 1000, message })
    }
  }
}
