using System;
using System.Collections.Generic;

namespace Example.Shops
{
    /// <summary>A shop.</summary>
    [Serializable]
    public partial class Shop<T> : Base, ISeller where T : Price
    {
        private readonly List<T> items = new();
        public string Name { get; set; }
        public event EventHandler Sold;

        public Shop(int size) : base(size)
        {
        }

        public async Task<int> Sell(T price)
        {
            int Helper(int x) => x + 1;
            return Helper(Console.Read());
        }

        public static bool operator ==(Shop<T> a, Shop<T> b) => true;

        class Inner
        {
            void Deep() { }
        }
    }

    public interface ISeller
    {
        int Sell(int price);
    }

    public enum State { Open, Closed }

    public record Point(int X, int Y);

    public struct Size
    {
        public int Width;
    }

    public delegate void Handler(int x);
}
