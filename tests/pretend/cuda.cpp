// GPUs that are not there, for a PyTorch built without CUDA. See pretended_cuda.py.
//
// A build for the CPU leaves the dispatch key CUDA without kernels. Here each of its operators gets
// the same one: it checks where the tensors are, as CUDA's kernels do, and has the CPU's kernel
// compute on the same memory.

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <set>
#include <unordered_map>

namespace {

using at::Tensor;
using c10::Device, c10::DeviceIndex, c10::DispatchKey, c10::DispatchKeySet, c10::IValue;
using c10::Storage, c10::StorageImpl, c10::TensorImpl;

constexpr auto GPU = c10::DeviceType::CUDA;
constexpr auto HOST = c10::DeviceType::CPU;
constexpr int MOST = 8;

// ---- What there is, and what has been counted ----

struct Memory {
  std::atomic<int64_t> used{0}, most{0}, limit{0};
};

Memory memory[MOST];
DeviceIndex n_gpus = 1;
thread_local DeviceIndex current = 0;
std::atomic<int64_t> n_kernels{0}, until_failure{-1};
std::string failure;  // its message; none is a lack of memory

void launch() {
  n_kernels++;
  if (until_failure >= 0 && until_failure-- == 0) {
    TORCH_CHECK(failure.empty(), failure);
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory (a pretended failure).");
  }
}

void reserve(DeviceIndex gpu, int64_t n) {
  auto& m = memory[gpu];
  const int64_t used = m.used += n;
  if (m.limit > 0 && used > m.limit) {
    m.used -= n;
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", n, " bytes; ",
                     used - n, " of ", m.limit.load(), " are taken on pretended GPU ", int(gpu), ".");
  }
  for (int64_t most = m.most; used > most && !m.most.compare_exchange_weak(most, used);) {}
}

// ---- Memory: the host's, counted for a GPU ----

// What keeps the memory of a storage: a block of its own, or that of the CPU's storage
// which a kernel has made.
struct Kept {
  c10::DataPtr data;
  Storage of_host;
  DeviceIndex gpu;
  int64_t n;
  ~Kept() { memory[gpu].used -= n; }
};

c10::DataPtr keep(void* address, Kept* kept) {
  return {address, kept, [](void* it) { delete static_cast<Kept*>(it); }, Device(GPU, kept->gpu)};
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t n) override {
    reserve(current, n);
    auto data = c10::GetCPUAllocator()->allocate(n);
    void* address = data.get();
    return keep(address, new Kept{std::move(data), {}, current, int64_t(n)});
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t n) const override { default_copy_data(to, from, n); }
} allocator;

c10::DataPtr to_gpu(const Storage& of_host, DeviceIndex gpu) {
  const int64_t n = of_host.nbytes();
  reserve(gpu, n);
  return keep(of_host.mutable_data(), new Kept{{}, of_host, gpu, n});
}

// ---- What torch asks of a device: which one is current, and streams that do nothing ----

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return GPU; }
  Device getDevice() const override { return {GPU, current}; }
  Device exchangeDevice(Device to) const override {
    const Device from = getDevice();
    setDevice(to);
    return from;
  }
  void setDevice(Device to) const override {
    TORCH_CHECK(to.index() < n_gpus, "CUDA error: invalid device ordinal");
    uncheckedSetDevice(to);
  }
  void uncheckedSetDevice(Device to) const noexcept override {
    if (to.has_index()) current = to.index();
  }
  DeviceIndex deviceCount() const noexcept override { return n_gpus; }
  c10::Stream getStream(Device d) const override {
    return c10::Stream(c10::Stream::DEFAULT, d.has_index() ? d : getDevice());
  }
  c10::Stream getDefaultStream(Device d) const override { return getStream(d); }
  c10::Stream getNewStream(Device d, int) const override { return getStream(d); }
  c10::Stream getStreamFromGlobalPool(Device d, bool) const override { return getStream(d); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  void record(void**, const c10::Stream&, const DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const DeviceIndex) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};

struct Hooks final : at::CUDAHooksInterface {
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return n_gpus; }
  DeviceIndex deviceCount() const override { return n_gpus; }
  DeviceIndex current_device() const override { return current; }
  DeviceIndex getCurrentDevice() const override { return current; }
  void setCurrentDevice(DeviceIndex to) const override { current = to; }
  DeviceIndex exchangeDevice(DeviceIndex to) const override { return std::exchange(current, to); }
  DeviceIndex maybeExchangeDevice(DeviceIndex to) const override {
    return std::exchange(current, to < 0 ? current : to);
  }
  bool isPinnedPtr(const void*) const override { return false; }
  c10::Allocator* getCUDADeviceAllocator() const override { return &allocator; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  Device getDeviceFromPtr(void*) const override { return {GPU, current}; }
  void deviceSynchronize(DeviceIndex) const override {}
};

// ---- Tensors of a GPU, as the CPU's kernels see them while one operator runs ----

class Loan {
 public:
  explicit Loan(Device gpu) : gpu_(gpu) {}

  // A tensor of the host over the memory of one of the GPU.
  Tensor lend(const Tensor& ours) {
    const auto* mine = ours.unsafeGetTensorImpl();
    auto& storage = storages_[mine->storage().unsafeGetStorageImpl()];
    if (!storage) {
      auto* held = new Storage(mine->storage());
      c10::DataPtr data(held->mutable_data(), held, [](void* it) { delete static_cast<Storage*>(it); }, HOST);
      storage = Storage(Storage::use_byte_size_t(), held->nbytes(), std::move(data), c10::GetCPUAllocator(), true);
      owners_.emplace(storage.unsafeGetStorageImpl(), ours);
    }
    auto theirs = at::detail::make_tensor<TensorImpl>(Storage(storage), DispatchKeySet(DispatchKey::CPU), mine->dtype());
    shape(theirs, ours);
    if (mine->is_wrapped_number()) theirs.unsafeGetTensorImpl()->set_wrapped_number(true);
    lent_.emplace_back(ours, theirs);
    return theirs;
  }

  // The GPU's tensor for one that the kernel returns: one that was lent, a view of one, or a new one.
  Tensor take(const Tensor& theirs) {
    if (theirs.device().type() != HOST) return theirs;
    for (auto& [mine, twin] : lent_)
      if (twin.is_same(theirs)) return mine;
    auto* key = theirs.storage().unsafeGetStorageImpl();
    Tensor mine;
    if (auto owner = owners_.find(key); owner != owners_.end()) {
      // An inference tensor if what it views is one, which the keys say.
      const auto& of = owner->second;
      mine = at::detail::make_tensor<TensorImpl>(TensorImpl::VIEW, Storage(of.storage()), of.key_set(), theirs.dtype());
    } else {
      auto& storage = made_[key];
      if (!storage) {
        auto data = to_gpu(theirs.storage(), gpu_.index());
        storage = Storage(Storage::use_byte_size_t(), theirs.storage().nbytes(), std::move(data), &allocator, true);
      }
      mine = at::detail::make_tensor<TensorImpl>(Storage(storage), DispatchKeySet(DispatchKey::CUDA), theirs.dtype());
    }
    shape(mine, theirs);
    return mine;
  }

  // What the kernel has given other memory or another shape gets it too.
  void settle() {
    for (auto& [mine, theirs] : lent_) {
      auto* storage = mine.storage().unsafeGetStorageImpl();
      if (storage->data() != theirs.storage().data() || storage->nbytes() != theirs.storage().nbytes()) {
        storage->set_data_ptr_noswap(to_gpu(theirs.storage(), mine.device().index()));
        storage->set_nbytes(theirs.storage().nbytes());
      }
      if (mine.sizes() != theirs.sizes() || mine.strides() != theirs.strides()) shape(mine, theirs);
    }
  }

 private:
  static void shape(const Tensor& one, const Tensor& like) {
    one.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  }

  Device gpu_;
  std::vector<std::pair<Tensor, Tensor>> lent_;          // of the GPU, and its twin
  std::unordered_map<StorageImpl*, Storage> storages_;   // of twins, by the GPU's storage
  std::unordered_map<StorageImpl*, Tensor> owners_;      // of the GPU, by the twin's storage
  std::unordered_map<StorageImpl*, Storage> made_;       // of the GPU, by what the kernel made
};

// ---- The kernel of all operators ----

template <class Function>
void for_tensors(IValue& value, const Function& function) {
  const auto over = [&](const auto& list) {
    auto changed = list;
    for (size_t i = 0; i < list.size(); ++i) {
      std::optional<Tensor> tensor = list.get(i);
      if (tensor && tensor->defined()) changed.set(i, function(*tensor));
    }
    value = changed;
  };
  if (value.isTensor()) {
    if (value.toTensor().defined()) value = function(value.toTensor());
  } else if (value.isTensorList()) {
    over(value.toTensorList().copy());
  } else if (value.isOptionalTensorList()) {
    over(value.toOptionalTensorList().copy());
  }
}

bool starts_with(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

// Operators that take a number of the host among their tensors, besides those tagged pointwise.
bool takes_host_number(const c10::OperatorHandle& op, const std::string& name) {
  static const std::set<std::string> names{"masked_fill", "masked_fill_", "fill_", "index_fill", "index_fill_", "where",
                                           "index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"};
  return op.hasTag(at::Tag::pointwise) || names.count(name) || starts_with(name, "_foreach_");
}

// Views and other bookkeeping of the host.
bool starts_no_kernel(const c10::FunctionSchema& schema, const std::string& name) {
  if (name == "resize_" || name == "is_set_to") return true;
  const auto& returned = schema.returns();
  return !returned.empty() && returned[0].alias_info() && !returned[0].alias_info()->isWrite();
}

void compute(const c10::OperatorHandle& op, DispatchKeySet, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto full = schema.name().substr(schema.name().find("::") + 2);
  const auto& arguments = schema.arguments();
  const auto first = stack->size() - arguments.size();
  const bool indexes = full == "index" || full.find("index_put") != std::string::npos || full == "_unsafe_index";

  std::optional<Device> gpu;
  std::optional<Device> asked;
  const auto mixed = [&](const Device& other, const Tensor& tensor) {
    TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ", *gpu, " and ",
                other, " (in aten::", full, ", a tensor of shape ", tensor.sizes(), ")");
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto& value = (*stack)[first + i];
    if (value.isDevice()) asked = value.toDevice();
    for_tensors(value, [&](const Tensor& tensor) {
      if (tensor.device().type() == GPU) {
        if (gpu && *gpu != tensor.device()) mixed(tensor.device(), tensor);
        gpu = tensor.device();
      }
      return tensor;
    });
  }
  if (!gpu) gpu = asked && asked->type() == GPU && asked->has_index() ? *asked : Device(GPU, current);

  const bool numbers = takes_host_number(op, full);
  bool by_mask = false;
  for (size_t i = 0; i < arguments.size(); ++i)
    for_tensors((*stack)[first + i], [&](const Tensor& tensor) {
      const bool index = indexes && arguments[i].name() == "indices";
      // "index" itself has looked for what a mask names already, by nonzero.
      by_mask |= index && full != "index" && (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte);
      if (tensor.device().type() == HOST) {
        const auto* alias = arguments[i].alias_info();
        const bool number = tensor.dim() == 0 && !(alias && alias->isWrite());
        const bool wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
        if (!index && !wrapped && !(number && numbers)) mixed(tensor.device(), tensor);
      }
      return tensor;
    });

  if (!starts_no_kernel(schema, full)) launch();
  if (by_mask) launch();

  Loan loan(*gpu);
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto& value = (*stack)[first + i];
    if (value.isDevice()) value = Device(HOST);
    for_tensors(value, [&](const Tensor& tensor) { return tensor.device().type() == GPU ? loan.lend(tensor) : tensor; });
  }
  {
    at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), stack);
  }
  loan.settle();
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i)
    for_tensors((*stack)[i], [&](const Tensor& tensor) { return loan.take(tensor); });
}

// ---- Operators that make tensors, move them between devices or give them other memory ----

Device place(std::optional<Device> asked) {
  if (!asked || !asked->has_index()) return {GPU, current};
  TORCH_CHECK(asked->index() < n_gpus, "CUDA error: invalid device ordinal");
  return *asked;
}

using Sizes = c10::SymIntArrayRef;
using Dtype = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;

Tensor empty(Sizes size, Dtype dtype, Layout, std::optional<Device> device, std::optional<bool>,
             std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(place(device));
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &allocator, DispatchKeySet(DispatchKey::CUDA),
                                   c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(Sizes size, Sizes stride, Dtype dtype, Layout, std::optional<Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(place(device));
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &allocator,
                                           DispatchKeySet(DispatchKey::CUDA), c10::dtype_or_default(dtype));
}

Tensor& copy_(Tensor& to, const Tensor& from, bool) {
  const bool read = from.device().type() == GPU, written = to.device().type() == GPU;
  launch();
  Loan loan(written ? to.device() : from.device());
  at::AutoDispatchBelowADInplaceOrView below;
  auto target = written ? loan.lend(to) : to;
  target.copy_(read ? loan.lend(from) : from);
  return to;
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  Tensor target = to;
  return copy_(target, from, non_blocking);
}

at::Scalar local_scalar_dense(const Tensor& number) {
  Loan loan(number.device());
  at::AutoDispatchBelowADInplaceOrView below;
  return at::_local_scalar_dense(loan.lend(number));
}

Tensor& set_storage(Tensor& tensor, Storage storage, c10::SymInt offset, Sizes size, Sizes stride) {
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_sizes_and_strides(size, stride, offset);
  return tensor;
}

Tensor& set_tensor(Tensor& tensor, const Tensor& source) {
  return set_storage(tensor, source.storage(), source.sym_storage_offset(), source.sym_sizes(), source.sym_strides());
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&compute>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("copy_", copy_);
  library.impl("_copy_from", copy_from);
  library.impl("_local_scalar_dense", local_scalar_dense);
  library.impl("set_.source_Storage_storage_offset", set_storage);
  library.impl("set_.source_Tensor", set_tensor);
}

C10_REGISTER_GUARD_IMPL(CUDA, Guard);

}  // namespace

// ---- What Python calls ----

extern "C" {

void start(int gpus) {
  n_gpus = gpus;
  c10::SetAllocator(GPU, &allocator, 255);
  // torch has asked for the hooks already, and keeps the ones of a build without CUDA.
  static_assert(sizeof(Hooks) == sizeof(at::CUDAHooksInterface));
  new (const_cast<at::CUDAHooksInterface*>(&at::detail::getCUDAHooks())) Hooks();
}

int current_gpu() { return current; }
void set_current_gpu(int gpu) { current = DeviceIndex(gpu); }
int64_t kernels() { return n_kernels; }
int64_t used(int gpu) { return memory[gpu].used; }
int64_t most_used(int gpu) { return memory[gpu].most; }
void forget_most_used(int gpu) { memory[gpu].most = memory[gpu].used.load(); }
void limit(int gpu, int64_t bytes) { memory[gpu].limit = bytes; }
void fail_after(int64_t kernels, const char* message) {
  failure = message ? message : "";
  until_failure = kernels;
}
}
